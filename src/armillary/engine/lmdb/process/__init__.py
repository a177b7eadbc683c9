"""One writer process for all workers of a folder, and the way there and back.

worker                         `Engine` in a worker: it reads the map itself and sends commands
writer_process, writer_main    the process that runs them: started and ended; its loop
handshake, handlers            where it is, and who may talk to it; what it is told to import
inbox, outbox, pending         messages in, messages out, commands that wait for their answer
"""

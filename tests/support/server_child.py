"""A whole server with a small service, as a process: `server_child DATA WORKERS PORT [inherit]`

With `inherit` the workers share one socket, as they do where the kernel does not balance.
"""

import os
import sys
from pathlib import Path

from tests.support.service import ECHO

from armillary.server import binding
from armillary.server.process.banner import TextBanner
from armillary.server.process.plan import make_plan
from armillary.server.process.run import run

if __name__ == "__main__":
    data, workers, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
    binding.CAN_BALANCE = sys.argv[4:] != ["inherit"]
    plan = make_plan(
        environ=os.environ,
        data=Path(data),
        port=port,
        workers=workers,
        opener="tests.support.service:open_engine_alone",
        protocols=(ECHO,),
    )
    say = lambda line: print(line, flush=True)  # noqa: E731
    sys.exit(run(plan, TextBanner(say), lambda line: print(line, file=sys.stderr, flush=True)))

-- Sends whole requests from a file, one after the other, from a given one on.
-- The file: a line with the length of the request, the request, and so on.

local requests = {}
local at = 0

function init(args)
  local file = assert(io.open(args[1], "rb"))
  while true do
    local line = file:read("*l")
    if not line then break end
    requests[#requests + 1] = file:read(tonumber(line))
  end
  file:close()
  at = tonumber(args[2])
end

function request()
  at = at + 1
  return requests[(at - 1) % #requests + 1]
end

function done(summary, latency, _)
  local errors = summary.errors
  io.write(string.format(
    '\n{"requests": %d, "duration_us": %d, "p50_us": %d, "p99_us": %d, "failures": %d, "broken": %d}\n',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99),
    errors.status, errors.connect + errors.read + errors.write + errors.timeout))
end

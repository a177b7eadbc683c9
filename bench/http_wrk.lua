-- Sends whole requests from a file, one after the other, from a given one on.
-- The file: a line with the length of the request, the request, and so on.
-- When all have been sent they begin anew; FIRST_TURN in an id then counts the turns, so that each
-- create is of an id of its own.

local FIRST_TURN = "-turn-000"

local requests = {}
local marks = {}
local at = 0

function init(args)
  local file = assert(io.open(args[1], "rb"))
  while true do
    local line = file:read("*l")
    if not line then break end
    local text = file:read(tonumber(line))
    requests[#requests + 1] = text
    marks[#requests] = text:find(FIRST_TURN, 1, true) or false
  end
  file:close()
  at = tonumber(args[2])
end

function request()
  local place = at % #requests + 1
  local turn = math.floor(at / #requests)
  at = at + 1
  local mark = turn > 0 and marks[place]
  if not mark then return requests[place] end
  local text = requests[place]
  return text:sub(1, mark - 1) .. string.format("-turn-%03d", turn)
    .. text:sub(mark + #FIRST_TURN)
end

function done(summary, latency, _)
  local errors = summary.errors
  io.write(string.format(
    '\n{"requests": %d, "duration_us": %d, "p50_us": %d, "p99_us": %d, "failures": %d, "broken": %d}\n',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99),
    errors.status, errors.connect + errors.read + errors.write + errors.timeout))
end

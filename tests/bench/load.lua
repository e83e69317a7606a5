-- wrk's load: small POSTs, each with the signed cookie of the next session of a list. One JSON line at the end.
-- Environment: BENCH_COOKIES, a file with one "name=value" a line.

local cookies = {}
for line in io.lines(os.getenv("BENCH_COOKIES")) do
  cookies[#cookies + 1] = line
end

-- Every thread starts elsewhere in the list, so that they do not walk it in step.
local threads = 0
function setup(thread)
  thread:set("offset", threads * 97)
  threads = threads + 1
end

local requests, next = {}, 0
function init(args)
  for i, cookie in ipairs(cookies) do
    requests[i] = wrk.format("POST", "/increment_counter",
      { ["Cookie"] = cookie, ["Content-Type"] = "application/json" }, '{"count":1}')
  end
  next = offset
end

function request()
  next = next + 1
  return requests[next % #requests + 1]
end

function done(summary, latency, _)
  local errors = summary.errors
  io.stdout:write(string.format(
    '{"requests":%d,"seconds":%.3f,"p50_us":%d,"p99_us":%d,"bad":%d}\n',
    summary.requests, summary.duration / 1e6, latency:percentile(50), latency:percentile(99),
    errors.connect + errors.read + errors.write + errors.status + errors.timeout))
end

-- wrk's load: seeds without a cookie, each of which begins a session. One JSON line at the end, like load.lua's.

function init(args)
  wrk.method = "POST"
  wrk.path = "/seed_session"
  wrk.headers["Content-Type"] = "application/json"
  wrk.body = '{"initial_count":0}'
end

function done(summary, latency, _)
  local errors = summary.errors
  io.stdout:write(string.format(
    '{"requests":%d,"seconds":%.3f,"p50_us":%d,"p99_us":%d,"bad":%d}\n',
    summary.requests, summary.duration / 1e6, latency:percentile(50), latency:percentile(99),
    errors.connect + errors.read + errors.write + errors.status + errors.timeout))
end

defmodule MyApp.RateLimit do
  use Hammer, backend: :ets, algorithm: :fix_window
end

MyApp.RateLimit.start_link(clean_period: :timer.minutes(1))

case MyApp.RateLimit.hit("login:42", :timer.minutes(1), 5) do
  {:allow, count} -> "#{count} of 5"
  {:deny, retry_after} -> "wait #{retry_after} ms"
end

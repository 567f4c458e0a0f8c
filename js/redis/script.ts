import { createHash } from "node:crypto";

/**
 * The script: it orders and stamps, and knows no algorithm. `docs/redis.md` describes the value of a key.
 *
 * KEYS[1] is the key. ARGV, few and short since every hit sends them: 1 the deadline (13 digits, or 0), where the known mark ends, the time to
 * live (negative if it need not be renewed) and whether to restore a lost key; 2 the mark of the last entry that the caller
 * knows, or nothing; 3 the entry without its time: operations and mark, or nothing; 4 the text of its policies, or nothing;
 * 5 a base that ends at the known mark, or nothing.
 *
 * The reply begins with a character and the time. `+`: the entries after the known mark; `#`: the same, with the position
 * where the mark ends and a colon before them; `=`: the whole value. In these the entry, if there are operations, was
 * appended now or before. Otherwise nothing was done. `>`: the deadline has passed; `t`: the text of the policies is
 * required; `x`: the key is gone; `l`: the log is too long, and here is the whole value; `v`: the value is of another
 * version or kind, and begins like this.
 */
export const script = `
local time = redis.call('TIME')
local now = string.format('%s%03d', time[1], math.floor(time[2] / 1000))
local deadline, at, ttl, restore = string.match(ARGV[1], '(%d+) (%d+) (%-?%d+) (%d)')
if now > deadline then return '>' .. now end
at, ttl = tonumber(at), tonumber(ttl)
local key, known, ops, own, base = KEYS[1], ARGV[2], '', '', ARGV[5] or ''
if ARGV[3] ~= '' then
  local cut = string.find(ARGV[3], '!', 1, true)
  ops, own = string.sub(ARGV[3], 1, cut - 1), string.sub(ARGV[3], cut)
end
local status, value, tail = '+', nil, nil
if known ~= '' then
  local rest = redis.call('GETRANGE', key, at - #known, -1)
  if string.find(rest, known, 1, true) == 1 then tail = string.sub(rest, #known + 1) end
end
if not tail then
  value = redis.call('GET', key) or ''
  if value == '' then
    if known ~= '' and (base == '' or restore ~= '1') then return 'x' .. now end
    tail, status = '', '='
  elseif string.sub(value, 1, 1) ~= 'a' then
    return 'v' .. now .. string.sub(value, 1, 64)
  else
    local stop
    if known ~= '' then stop = select(2, string.find(value, known, 1, true)) end
    if stop then
      status, at, tail = '#', stop, string.sub(value, stop + 1)
    else
      status, tail = '=', value
    end
    local before = select(2, string.find(value, '~' .. string.sub(own, 2, 9), 1, true))
    if ops ~= '' and before then
      local highest = string.match(value, '^%w+', before + 1)
      if tonumber(string.match(own, '^%w+', 10), 36) <= tonumber(highest, 36) then ops = '' end
    end
  end
end
local entry = ''
if ops ~= '' and not string.find(tail, own, 1, true) then
  local last = tail
  if tail == '' then last = known end
  if string.sub(last, -11) ~= string.sub(own, -11) then
    if (ARGV[4] or '') == '' then return 't' .. now end
    ops = '@' .. ARGV[4] .. ';' .. ops
  end
  entry = now .. ops .. own
end
if value == '' then
  if base ~= '' then tail = base .. known end
  if tail .. entry == '' then return '=' .. now end
  value = 'a' .. tail .. entry
  redis.call('SET', key, value, 'PX', math.abs(ttl))
  return '=' .. now .. value
end
if base ~= '' and status ~= '=' and 2 * (1 + #base + #known) < at then
  redis.call('SET', key, 'a' .. base .. known .. tail .. entry, 'KEEPTTL')
  status, at = '#', 1 + #base + #known
elseif entry ~= '' then
  if (value and #value or at + #tail) > 65536 then
    value = value or redis.call('GET', key)
    if #value - string.find(value .. '!', '!', 1, true) > 65536 then return 'l' .. now .. value end
  end
  redis.call('APPEND', key, entry)
end
if ttl > 0 and redis.call('PTTL', key) < ttl then redis.call('PEXPIRE', key, ttl) end
if status == '#' then return '#' .. now .. at .. ':' .. tail .. entry end
return status .. now .. tail .. entry
`.trim();

/** The name of the script in Redis. */
export const scriptSha: string = createHash("sha1").update(script).digest("hex");

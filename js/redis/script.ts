import { createHash } from "node:crypto";

/**
 * The script. It orders and timestamps entries, and contains no algorithm. `docs/redis.md` describes the value of a key.
 *
 * KEYS[1] is the key. The arguments are few and short, since every hit sends them:
 *
 * 1. four numbers: the deadline (13 digits, or 0), the offset where the known mark ends, the time to live in milliseconds
 *    (negative if only a new key gets it), and 1 if a lost key is to be restored, else 0
 * 2. the known mark: that of the last entry which the caller has replayed; empty if there is none
 * 3. the caller's entry without its time, so operations and mark; empty if there is none
 * 4. the text of the caller's policies; empty or left out if not needed
 * 5. a base that replaces the log up to the known mark; empty or left out for none
 *
 * The reply begins with its kind, one character, and the time. On success, when the caller's entry, if any, was
 * appended now or before:
 *
 * - `+`: the entries after the known mark
 * - `#`: the same, after the new offset where the known mark ends and a colon
 * - `=`: the whole value
 *
 * Otherwise the value is unchanged:
 *
 * - `>`: the deadline has passed
 * - `t`: the text of the policies is required
 * - `x`: the key does not exist, although the caller knows a mark
 * - `l`: the log is too long; the whole value follows
 * - `v`: the value is of another version or kind; its first 64 characters follow
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

/** The SHA-1 of the script, by which Redis knows it. */
export const scriptSha: string = createHash("sha1").update(script).digest("hex");

-- Orders and timestamps entries, for many keys in one call, and contains no algorithm. `docs/redis.md` describes the value
-- of a key.
--
-- KEYS are the keys. ARGV:
--
-- 1. the deadline in milliseconds
-- 2. the tag of the caller's entries
-- 3. the text of the caller's policies, and `|`
-- 4. the time to live of a new key in milliseconds
-- then for each key: the mark of the last entry that the caller has replayed, the last three characters of the time at
-- which the key's line began (13 spaces if none was replayed), and the operations of the caller's entry, perhaps none
-- then threes of the position of a key, a kind, and a text:
--   `t` the time to live that the key must have
--   `b` a base that replaces what lies before the known mark
--   `n` a base, with a mark of its own, that replaces the value if the known mark is its end; others must read it again
--   `m` the same whatever follows the known mark, which stays
--   `r` the same for a key that does not exist
--
-- The reply is the time, then for each key a text that begins with its kind; the time alone if the deadline has passed. On
-- success, when the caller's entry was appended now or before:
--
-- `+` the entries after the known mark
-- `#` the same, and the base was taken
-- `=` the whole value
-- `^` the same, which the base restored
--
-- Before these, `*` asks for a base with the next call, and `!` for one at once. Otherwise nothing was done:
--
-- `x` the key does not exist, although the caller knows a mark
-- `o` the value, which follows, is of another line than the known mark
-- `l` the log is too long; the whole value follows
-- `v` the value is of another version or kind; its first 64 characters follow
local time = redis.call('TIME')
local floor, find, sub, gsub, call = math.floor, string.find, string.sub, string.gsub, redis.call
local now = time[1] * 1000 + floor(time[2] / 1000)
local stamp = string.char(
  48 + floor(now / 68719476736) % 64,
  48 + floor(now / 1073741824) % 64,
  48 + floor(now / 16777216) % 64,
  48 + floor(now / 262144) % 64,
  48 + floor(now / 4096) % 64,
  48 + floor(now / 64) % 64,
  48 + now % 64
)
local replies = {stamp}
if now > tonumber(ARGV[1]) then return replies end
local tag, policies, count = ARGV[2], ARGV[3], #KEYS
local mark, last_policy = '!' .. tag, 8 + #policies
local due, bases
for i = count + 5, #ARGV, 3 do
  local at = tonumber(ARGV[i])
  if ARGV[i + 1] == 't' then
    due = due or {}
    due[at] = ARGV[i + 2]
  else
    bases = bases or {}
    bases[at] = {ARGV[i + 1], ARGV[i + 2]}
  end
end
-- Returns the number that policies have in a value, or gives them the next one. Too many keep their text.
local function named(value, text)
  local braced = '{' .. text .. '}'
  local _, to = find(value, braced, 1, true)
  if to then return '$' .. string.match(value, '^%d+', to + 1) end
  local last = 0
  for number in string.gmatch(value, '}(%d+)') do last = number + 0 end
  return last < 64 and braced .. last + 1 or '@' .. text
end
local function entry_of(value, ops)
  if ops == '' then return '' end
  local own = ''
  if sub(value, 9, last_policy) ~= policies then
    own = named(value, sub(policies, 1, -2))
    if sub(own, 1, 1) == '@' then own = own .. ';' end
  end
  if find(ops, '@', 1, true) then
    value = value .. own
    ops = gsub(ops, '@([^;]+)', function(text)
      local name = named(value, text)
      value = value .. name
      return name
    end)
  end
  return stamp .. own .. ops .. mark
end
-- Whether the caller's entry is in the value, or in its base.
local function is_in(value)
  if find(value, tag, 1, true) then return true end
  local process = sub(tag, 1, 5)
  local at = find(value, '~' .. process, 1, true)
  if not at then
    at = find(value, '!', 1, true) or 1
    if sub(value, at + 1, at + 5) ~= process then return false end
  end
  return (tonumber(sub(tag, 6), 36) or 0) <= (tonumber(sub(value, at + 6, at + 9), 36) or -1)
end
local values = call('MGET', unpack(KEYS))
for i = 1, count do
  local key, arg, value = KEYS[i], ARGV[i + 4], values[i]
  local known, ops, base, reply, is_done = sub(arg, 1, 10), sub(arg, 14), bases and bases[i], nil, true
  if not value then
    if base and base[1] == 'r' then
      value, reply = 'b' .. stamp .. base[2], '^'
    elseif sub(known, 1, 1) ~= ' ' then
      reply, is_done = 'x', false
    elseif ops == '' then
      reply, is_done = '=', false
    else
      value, reply = 'b' .. stamp .. policies, '='
    end
    if value then
      value = value .. entry_of(value, ops)
      -- A key of another type has no value, and is left as it is.
      if call('SET', key, value, 'PX', due and due[i] or ARGV[4], 'NX') then
        reply = reply .. value
      else
        reply, is_done = 'v', false
      end
    end
  else
    local from, to = find(value, known, 1, true)
    local tail, cut = to and sub(value, to + 1), nil
    if #value > 128 then cut = find(value, '!', 1, true) or 0 end
    if not tail then
      if sub(value, 1, 1) ~= 'b' then
        reply, is_done = 'v' .. sub(value, 1, 64), false
      elseif is_in(value) then
        reply, ops = '=' .. value, ''
      elseif sub(known, 1, 1) ~= ' ' and (base and (base[1] == 'm' or base[1] == 'r') or sub(value, 6, 8) ~= sub(arg, 11, 13)) then
        reply, is_done = 'o' .. value, false
      end
    elseif tail ~= '' and find(tail, tag, 1, true) then
      ops = ''
    end
    if is_done and ops ~= '' and cut and #value - cut > 65536 and not base then
      reply, is_done = 'l' .. value, false
    end
    if is_done then
      local shortened
      if tail and base then
        local kind, text = base[1], base[2]
        if kind == 'm' or kind == 'n' and tail == '' then
          shortened = sub(value, 1, 8) .. text .. gsub(tail, '!', '"')
        elseif kind == 'b' and 2 * (8 + #text) < from + 40 then
          shortened = sub(value, 1, 8) .. text .. known .. tail
        end
      end
      local entry = entry_of(shortened or value, ops)
      if shortened then
        call('SET', key, shortened .. entry, 'KEEPTTL')
        reply = (base[1] == 'n' and '=' .. shortened or '#' .. tail) .. entry
      else
        reply = (reply or (tail and '+' .. tail or '=' .. value)) .. entry
        if entry ~= '' then
          -- A short value takes no more memory than it needs.
          if #value < 192 then call('SET', key, value .. entry, 'KEEPTTL') else call('APPEND', key, entry) end
        end
        if cut and #value > 5 * cut - 200 then reply = (#value > 512 + 10 * cut and '!' or '*') .. reply end
      end
    end
  end
  if is_done and due and due[i] and call('PTTL', key) < tonumber(due[i]) then call('PEXPIRE', key, due[i]) end
  replies[i + 1] = reply
end
return replies

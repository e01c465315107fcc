local price = require("shop.price")

local M = {}

-- How many fit.
M.LIMIT = 20

--- A new basket.
-- @param items what is in it
function M.new(items)
  return setmetatable({ items = items }, M)
end

--[[ How many
there are. ]]
function M:count()
  local function each(x) return x end
  return #self.items + each(0)
end

function M.deep.inner:touch() end

-- Only here.
local function helper(a, ...)
  return price.of(a)
end

local handler = function(event) return helper(event) end

M.parse = function(text) return M.new(text) end

M.table = {
  sell = function(to) return to end,
}

function global_one() end

return M

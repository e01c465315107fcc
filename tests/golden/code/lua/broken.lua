function whole()
  return 1
end

function half(a
  if a then
    return {

function after()
  return 2
end

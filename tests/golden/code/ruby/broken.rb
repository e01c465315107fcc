class Whole
  def works; end
end

class Half
  def lost(a, (
    if a {

def after
  1
end

class Whole {
  def works = 1
}

class Half {
  def lost(a: Int = {
    if (a {

def after = 1

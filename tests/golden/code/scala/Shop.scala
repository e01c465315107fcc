package shop.goods

import scala.collection.mutable
import shop.{Price => Cost, _}

/** What can be sold. */
trait Sellable {
  def price: Cost
  def sell(to: String): Boolean
}

/** Something with a name.
  *
  * It has a price too.
  */
case class Thing[T](name: String, private val count: Int = 0)(implicit o: Ordering[T])
    extends Base(name)
    with Sellable {

  type Key = String
  private val secret = 1
  lazy val size: Int = name.length

  // Sells it.
  override def sell(to: String): Boolean = {
    def local(x: Int) = x
    local(1) > 0
  }

  protected[goods] def touch(): Unit = ()
  private def hidden(): Unit = ()
  def +(other: Thing[T]): Thing[T] = this
}

object Thing {
  val Limit = 3
  private var made = 0
  def parse(text: String): Thing[Int] = Thing(text)
}

sealed abstract class State

enum Color {
  case Red, Green
  def darker: Color = Red
}

given byName: Ordering[Thing[Int]] with {
  def compare(x: Thing[Int], y: Thing[Int]): Int = 0
}

extension (text: String)
  def größe: Int = text.length

def main(args: Array[String]): Unit = println(Thing.Limit)

package object helpers {
  val version = "1.0"
}

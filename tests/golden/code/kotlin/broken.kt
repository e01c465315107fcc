class Whole {
    fun works() {}
}

class Half {
    fun lost(a: Int {
        if (a

fun after() = 1

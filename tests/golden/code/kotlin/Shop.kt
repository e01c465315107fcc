package shop.goods

import java.util.UUID
import shop.Price as Cost

/** What can be sold. */
interface Sellable {
    val price: Cost
    fun sell(to: String): Boolean
}

enum class Size {
    SMALL,
    LARGE;

    fun larger(): Size = LARGE
}

/**
 * Something with a name.
 */
@Suppress("unused")
data class Thing<T : Any>(
    val name: String,
    private var count: Int = 0,
) : Base(name), Sellable {
    constructor(name: String) : this(name, 1)

    init {
        require(count >= 0)
    }

    private val lazyName: String by lazy { name }
    val size: Int
        get() = count

    // Sells it.
    override suspend fun sell(to: String): Boolean {
        fun local(x: Int) = x
        return local(1) > 0
    }

    protected open fun touch() {}

    internal inner class Part

    companion object {
        const val LIMIT = 3

        @JvmStatic
        fun parse(text: String): Thing<String> = Thing(text)
    }
}

object Registry {
    val things = mutableListOf<Thing<*>>()
    private fun clear() = things.clear()
}

sealed class State

typealias Things = List<Thing<*>>

const val VERSION = "1.0"
internal var level = 2

fun String.größe(): Int = length
private inline fun <reified T> largest(one: T, other: T): T = one

import Foundation

/// What can be sold.
public protocol Sellable {
    var price: Double { get }
    func sell(to buyer: String) -> Bool
}

/// Something with a name.
///
/// It has a price too.
@available(iOS 13, *)
open class Thing<T: Hashable>: Base, Sellable {
    static let limit = 3
    private var count = 0

    public init(name: String) {
        self.count = 1
    }

    deinit {}

    public var price: Double {
        return Double(count)
    }

    // Sells it.
    open func sell(to buyer: String) -> Bool {
        func local(_ x: Int) -> Int { x }
        return local(1) > 0
    }

    fileprivate func hidden() async throws {}

    class func make() -> Thing { Thing(name: "") }

    subscript(index: Int) -> Int {
        return index
    }

    static func + (one: Thing, other: Thing) -> Thing { one }

    enum Size: String {
        case small, large
        func larger() -> Size { .large }
    }

    typealias Key = String
}

struct Point {
    var x: Int
    mutating func move() {}
}

extension Thing: Equatable where T: Codable {
    public func same() -> Bool { true }
}

actor Counter {
    func add() {}
}

let version = "1.0"
private var level = 2

func größe(_ länge: Int) -> Int { länge }

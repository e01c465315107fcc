class Whole {
    func works() {}
}

class Half {
    func lost(a: Int {
        if a

func after() -> Int { 1 }

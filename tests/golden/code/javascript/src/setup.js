// A script: all that it has is everybody's.
function setUp() {
  tearDown();
}
var ready = setUp(), count = 0;
const tearDown = () => {};

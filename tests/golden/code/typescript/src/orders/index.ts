export * from "./service";
export { Order } from "./order";
import { Order } from "./order";
export default Order;

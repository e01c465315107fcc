import { Component } from "react";

type ListProps<T> = { items: T[]; onPick: (item: T) => void; render: (item: T) => JSX.Element };

export class List<T extends string> extends Component<ListProps<T>> {
  state = { picked: 0 };

  private pick = (item: T) => {
    this.setState({ picked: this.state.picked + 1 });
    this.props.onPick(item);
  };

  render() {
    const { items, render: Item } = this.props;
    return <>{items.map((item) => <Item key={item} onClick={() => this.pick(item)} />)}</>;
  }
}

export const identity = <T,>(value: T): T => value;

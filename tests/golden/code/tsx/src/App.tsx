import React, { memo, useCallback, useState, type ReactNode } from "react";
import { List } from "./List";
import * as Icons from "./icons";
import { useItems } from "./useItems";

interface Props {
  title: string;
  children?: ReactNode;
  onPick(name: string): void;
}

/** The whole page. */
export const App: React.FC<Props> = ({ title, onPick, children }) => {
  const [open, setOpen] = useState<boolean>(false);
  const { items, reload: refresh } = useItems();
  const pick = useCallback((name: string) => {
    onPick(name);
    setOpen(!open);
  }, [onPick, open]);
  return (
    <main onClick={refresh}>
      <Icons.Star size={2} />
      <List items={items} onPick={pick} render={Row}>
        {children}
      </List>
      {open && <Title text={title} />}
    </main>
  );
};

export const Row = memo(function Row({ name }: { name: string }) {
  return <li>{name}</li>;
});

function Title(props: { text: string }) {
  return <h1>{props.text}</h1>;
}

export default App;

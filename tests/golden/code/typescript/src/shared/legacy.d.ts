declare module "legacy" {
  export function connect(host: string): Connection;
  export class Connection {
    close(): void;
  }
}

declare namespace Legacy.Inner {
  const version: string;
  namespace Deep {
    type Name = string;
  }
}

declare function legacy(): void;
declare function legacy(name: string): void;
declare const LEGACY: typeof legacy;
declare let mutable: Legacy.Inner.Deep.Name;

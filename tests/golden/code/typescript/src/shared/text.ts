/** Something that can say what it is. */
export interface Described {
  describe(): string;
}

export function title(text: string): string {
  return upper(text.slice(0, 1)) + rest`of ${text}`;
}

const upper = (text: string) => text.toUpperCase();

function rest(parts: TemplateStringsArray, ...values: string[]) {
  return parts.join("") + values.join("");
}

export const Labelled = (label: string) => <T>(target: T): T => target;

export class Größe {
  ändern(): Größe {
    return new Größe();
  }
}

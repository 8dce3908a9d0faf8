/**
 * Numbers of JSON that have more digits than a double holds. In a value, such a number is a `Decimal`, and `write` puts its digits into the
 * text unchanged, for which `JSON.stringify` has no way.
 */

/** A number by its literal: `999999998.999999812`. */
export class Decimal {
  readonly literal: string
  constructor(literal: string) {
    this.literal = literal
  }
  toString(): string {
    return this.literal
  }
  toJSON(): string {
    return mark + this.literal
  }
}

/** `JSON.stringify` turns a decimal into a text with this prefix. It is secret, so no other text begins with it. */
export const mark = `${globalThis.crypto.randomUUID()}:`

const marked = new RegExp(`"${mark}(-?[0-9.]+)"`, "g")

/** A text that `JSON.stringify` wrote, each decimal in it with all its digits. */
export const unmarked = (text: string): string => (text.includes(mark) ? text.replace(marked, "$1") : text)

/** The JSON text of a value. */
export const write = (value: unknown): string => unmarked(JSON.stringify(value))

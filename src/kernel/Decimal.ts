/** JSON numbers with more digits than a double can represent. Unlike `JSON.stringify`, `write` preserves all their digits. */

/** A number that retains its literal, such as `999999998.999999812`. */
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

/** `JSON.stringify` writes a decimal as a string with this prefix. The prefix is random and secret, so no other string begins with it. */
export const mark = `${globalThis.crypto.randomUUID()}:`

const marked = new RegExp(`"${mark}(-?[0-9.]+)"`, "g")

/** Replaces the marked strings in JSON text with the digits of their decimals. */
export const restoreDecimals = (text: string): string => (text.includes(mark) ? text.replace(marked, "$1") : text)

export const write = (value: unknown): string => restoreDecimals(JSON.stringify(value))

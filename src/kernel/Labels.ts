/**
 * Labels of a call: its tags and its end user.
 *
 * Where the specification is silent:
 * - A call has up to 8 tags, with those of its key, of up to 1,024 bytes together. Names have 1 to 64 of `A-Z a-z 0-9 _ . -`. Values have 1 to 128
 *   printable characters.
 */
import { Schema } from "effect"

export const tagsMax = 8
const bytesMax = 1_024

const isName = (name: string): boolean => /^[A-Za-z0-9_.-]{1,64}$/.test(name)
const isText = (value: string): boolean => /^[^\p{Cc}\p{Cs}\p{Zl}\p{Zp}]{1,128}$/u.test(value)

const nameRule = "a name of 1 to 64 letters, digits, `_`, `.` or `-`"
const valueRule = "a value of 1 to 128 printable characters"

const byName = ([a]: readonly [string, string], [b]: readonly [string, string]): number => (a < b ? -1 : 1)

/** Lines of `name=value`, ascending by name. */
export const textOf = (tags: Iterable<readonly [string, string]>): string =>
  [...tags]
    .sort(byName)
    .map(([name, value]) => `${name}=${value}`)
    .join("\n")

const pairOf = (line: string): readonly [string, string] => {
  const end = line.indexOf("=")
  return [line.slice(0, end), line.slice(end + 1)]
}

/** The tags of a stored text. */
export const tagsOf = (text: string): Readonly<Record<string, string>> =>
  Object.fromEntries(text === "" ? [] : text.split("\n").map(pairOf))

/** Tags as a JSON object, for keys. */
export const KeyTags = Schema.Record({ key: Schema.String, value: Schema.String }).pipe(
  Schema.filter((tags) => {
    const all = Object.entries(tags)
    if (all.length > tagsMax) return `at most ${tagsMax} tags`
    if (!all.every(([name]) => isName(name))) return nameRule
    if (!all.every(([, value]) => isText(value))) return valueRule
    return isLong(textOf(all)) ? `tags of at most ${bytesMax} bytes together` : undefined
  })
)

const isLong = (text: string): boolean => text.length > bytesMax || Buffer.byteLength(text) > bytesMax

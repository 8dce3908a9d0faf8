/** Text as both engines keep it. PostgreSQL has no NUL in a text, and in a JSON text no half of a surrogate pair either. */

const substitute = "\uFFFD"

/** With U+FFFD where a NUL was. What is half of a surrogate pair becomes that on both engines, as UTF-8 has none. */
export const storable = (text: string): string => (text.includes("\0") ? text.replaceAll("\0", substitute) : text)

/** An escape that stands for itself: before it is an even number of backslashes. Whole pairs are not written as escapes. */
const unstorable = /(?<!\\)((?:\\\\)*)\\u(?:0000|d[89a-f][0-9a-f]{2})/g

/** The same for what `JSON.stringify` has written. */
export const storableJson = (json: string): string =>
  json.includes("\\u") ? json.replace(unstorable, "$1\\ufffd") : json

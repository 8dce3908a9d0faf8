/** Converts text to text that both engines can store. PostgreSQL rejects NUL in text and unpaired surrogates in JSON. */

const substitute = "\uFFFD"

/** Replaces NUL with U+FFFD. The encoding to UTF-8 replaces unpaired surrogates for either engine. */
export const storable = (text: string): string => (text.includes("\0") ? text.replaceAll("\0", substitute) : text)

/** Matches an escaped NUL or unpaired surrogate after an even number of backslashes. `JSON.stringify` does not escape complete pairs. */
const unstorable = /(?<!\\)((?:\\\\)*)\\u(?:0000|d[89a-f][0-9a-f]{2})/g

/** Works like `storable`, for the output of `JSON.stringify`. */
export const storableJson = (json: string): string =>
  json.includes("\\u") ? json.replace(unstorable, "$1\\ufffd") : json

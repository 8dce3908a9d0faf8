/**
 * Statements are written in what both engines take, but for a few things that are turned here, by the text, once for each:
 * - `?` is a parameter. PostgreSQL numbers them.
 * - A `+` before a column tells SQLite not to look by an index. PostgreSQL has none for texts, and chooses by itself.
 * - A whole number is asked for as text where it is not exact (`exact`). Here the connection reads every number so.
 * - `CROSS JOIN a ON b` tells SQLite in which order to look. PostgreSQL finds the order by itself, and has no such join.
 */

const exactInSqlite = /CASE WHEN abs\((.+?)\) > 9007199254740991 THEN CAST\((\1) AS TEXT\) ELSE \1 END/g

const known = new Map<string, string>()

/** The texts of statements are few; those with lists of parameters are as many as there are lengths of lists. */
const knownMax = 2_000

export const postgres = (text: string): string => {
  let turned = known.get(text)
  if (turned !== undefined) return turned
  let parameters = 0
  turned = text
    .replaceAll(/'(?:[^']|'')*'|\?/g, (part) => (part === "?" ? `$${++parameters}` : part))
    .replaceAll("CROSS JOIN", "JOIN")
    .replaceAll(exactInSqlite, "$2")
    .replaceAll(/(?<=[\s(])\+(?=[a-z])/g, "")
  if (known.size >= knownMax) known.clear()
  known.set(text, turned)
  return turned
}

/**
 * Translates statements to PostgreSQL. Statements use the common subset of both engines, with these exceptions:
 * - `?` is a parameter. PostgreSQL numbers parameters.
 * - A `+` before a column keeps SQLite from using an index. PostgreSQL has no such operator for texts, and its planner decides by itself.
 * - SQLite selects an integer as text if a number is not exact (`exact`). The connection to PostgreSQL does this for every number.
 * - `CROSS JOIN a ON b` fixes the join order in SQLite. PostgreSQL has no such syntax, and its planner finds the order.
 */

const exactInSqlite = /CASE WHEN abs\((.+?)\) > 9007199254740991 THEN CAST\((\1) AS TEXT\) ELSE \1 END/g

const known = new Map<string, string>()

/** The maximum number of cached translations. Only statements with lists of parameters have many variants. */
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

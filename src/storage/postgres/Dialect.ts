/**
 * Translates statements for PostgreSQL. Statements use the subset of SQL that both engines have in common, with these exceptions:
 * - `?` stands for a parameter. PostgreSQL numbers its parameters.
 * - A `+` before a column keeps SQLite from using an index. PostgreSQL has no such operator for text, and its planner decides by itself.
 * - SQLite statements select an integer as text if a number would not be exact (`exact`). The connection to PostgreSQL returns every such number as
 *   text.
 * - `CROSS JOIN a ON b` fixes the join order in SQLite. PostgreSQL has no such syntax, and its planner determines the order itself.
 */

const exactInSqlite = /CASE WHEN abs\((.+?)\) > 9007199254740991 THEN CAST\((\1) AS TEXT\) ELSE \1 END/g

const known = new Map<string, string>()

/** The maximum number of cached translations. Only statements that contain lists of parameters have many variants. */
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

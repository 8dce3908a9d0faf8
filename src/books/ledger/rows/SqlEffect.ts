/**
 * The SQL requests of a running batch. A batch is a generator of requests, so the same code runs synchronously on the writer's thread and
 * asynchronously with any `SqlClient`.
 */

export interface Query {
  readonly _tag: "Query"
  readonly text: string
  readonly params: ReadonlyArray<unknown>
}

/** A request to insert rows into a table. `conflict` is the text after `ON CONFLICT`. */
export interface Insert {
  readonly _tag: "Insert"
  readonly table: string
  readonly columns: ReadonlyArray<string>
  readonly rows: ReadonlyArray<ReadonlyArray<unknown>>
  readonly conflict?: string
}

/** A request to set columns of rows. Each row contains the values of `columns`, followed by the value of the column `key` that identifies it. */
export interface Change {
  readonly _tag: "Change"
  readonly table: string
  readonly columns: ReadonlyArray<string>
  readonly key: string
  readonly rows: ReadonlyArray<ReadonlyArray<unknown>>
}

/** A request to run a statement without reading its rows. */
export interface Run {
  readonly _tag: "Run"
  readonly text: string
  readonly params: ReadonlyArray<unknown>
}

/** A request to run several queries in one round trip. */
export interface All {
  readonly _tag: "All"
  readonly queries: ReadonlyArray<Query>
}

export type SqlEffect = Query | All | Insert | Change | Run
// oxlint-disable-next-line typescript/no-explicit-any -- rows are typed where they are read, by the select that names them
export type Rows = ReadonlyArray<any>
export type SqlSteps<A> = Generator<SqlEffect, A, Rows>

export const insertText = ({ columns, conflict, table }: Insert, count: number): string => {
  const tuple = `(${columns.map(() => "?").join(", ")})`
  const tail = conflict === undefined ? "" : ` ON CONFLICT ${conflict}`
  return `INSERT INTO ${table} (${columns.join(", ")}) VALUES ${Array(count).fill(tuple).join(", ")}${tail}`
}

export const changeText = ({ columns, key, table }: Change): string =>
  `UPDATE ${table} SET ${columns.map((column) => `${column} = ?`).join(", ")} WHERE ${key} = ?`

export const query = function* (text: string, params: ReadonlyArray<unknown> = []): SqlSteps<Rows> {
  return yield { _tag: "Query", text, params }
}

export function* all(queries: ReadonlyArray<Query>): SqlSteps<ReadonlyArray<Rows>> {
  return queries.length === 0 ? [] : yield { _tag: "All", queries }
}

export const queryOf = (text: string, params: ReadonlyArray<unknown> = []): Query => ({ _tag: "Query", text, params })

export const run = function* (text: string, params: ReadonlyArray<unknown> = []): SqlSteps<void> {
  yield { _tag: "Run", text, params }
}

/** Inserts the rows, if there are any. */
export function* insert(
  table: string,
  columns: ReadonlyArray<string>,
  rows: ReadonlyArray<ReadonlyArray<unknown>>,
  conflict?: string
): SqlSteps<void> {
  if (rows.length > 0) yield { _tag: "Insert", table, columns, rows, ...(conflict !== undefined && { conflict }) }
}

/** Changes the rows, if there are any. */
export function* change(
  table: string,
  columns: ReadonlyArray<string>,
  key: string,
  rows: ReadonlyArray<ReadonlyArray<unknown>>
): SqlSteps<void> {
  if (rows.length > 0) yield { _tag: "Change", table, columns, key, rows }
}

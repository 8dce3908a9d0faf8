/** The data that is copied between the engines: the tables on SQLite, with rows in a common form. */

export type Kind = "integer" | "real" | "text" | "blob"

export interface Column {
  readonly name: string
  readonly kind: Kind
}

export interface Table {
  readonly name: string
  readonly columns: ReadonlyArray<Column>
  /** The positions of the key columns. Both engines read rows in key order. */
  readonly key: ReadonlyArray<number>
}

/** An integer in decimal digits, a real number in JavaScript's notation, a string, or bytes in hex. No amount becomes a JavaScript number. */
export type Value = string | null

export type Row = ReadonlyArray<Value>

/** Returns whether the column's values may take megabytes. Hashes are short. */
const isLong = ({ kind, name }: Column): boolean => kind === "blob" && !name.endsWith("_hash")

/** Returns the number of rows per read and per transaction. It is lower for tables whose rows may take megabytes. */
export const sliceOf = ({ columns }: Table): number => (columns.some(isLong) ? 64 : 8_192)

export const keyOf = ({ key }: Table, row: Row): Row => key.map((place) => row[place]!)

/** Returns a row's name for messages. */
export const nameOf = (table: Table, row: Row): string =>
  `${table.name} ${table.key.map((place) => `${table.columns[place]!.name}=${row[place]}`).join(" ")}`

/** Returns whether a table belongs to only one engine and is therefore not copied. */
export const isEnginesOwn = (table: string): boolean => table.startsWith("tollgate_sql_")

/** One of the two databases. Its promises fail with the engine's error. */
export interface End {
  /** The name in messages. */
  readonly shown: string
  /** Returns the columns of each of the service's tables. */
  readonly columns: () => Promise<ReadonlyMap<string, ReadonlySet<string>>>
  readonly count: (table: Table) => Promise<number>
  /** Reads rows in key order, from the beginning or after the key `after`. */
  readonly read: (table: Table, after: Row | undefined, limit: number) => Promise<ReadonlyArray<Row>>
  readonly last: (table: Table) => Promise<Row | undefined>
}

export interface Source extends End {
  /** The number of strings with replaced characters, by column. */
  readonly replaced: Map<string, number>
}

export interface Target extends End {
  /** Reads the table that records the copy's progress (`copyTable`). Returns `undefined` if the table does not exist. */
  readonly marks: () => Promise<ReadonlyMap<string, string> | undefined>
  /** Empties the tables and writes these marks, in one transaction. */
  readonly begin: (tables: ReadonlyArray<Table>, marks: ReadonlyMap<string, string>) => Promise<void>
  /**
   * Adds rows and writes a mark, in one transaction. `onSent` is called once the rows have been sent to a server, or before they are written to a
   * file.
   */
  readonly write: (
    table: Table,
    rows: ReadonlyArray<Row>,
    mark: readonly [name: string, value: string],
    onSent: () => void
  ) => Promise<void>
  /** Sets the values that are derived from the copied rows. Idempotent. */
  readonly settle: () => Promise<void>
  /** Removes the marks durably, so that the database can be used. */
  readonly release: () => Promise<void>
}

/** The content that is copied between engines: the tables, as SQLite has them, and their rows in a form that is the same on both. */

export type Kind = "integer" | "real" | "text" | "blob"

export interface Column {
  readonly name: string
  readonly kind: Kind
}

export interface Table {
  readonly name: string
  readonly columns: ReadonlyArray<Column>
  /** The indexes of the key columns, by which rows are read in the same order on both engines. */
  readonly key: ReadonlyArray<number>
}

/** A whole number in decimal digits, a real one as JavaScript writes it, a text, or bytes in hex. No amount becomes a JavaScript number. */
export type Value = string | null

export type Row = ReadonlyArray<Value>

/** How many rows are read, and written in one transaction, at a time. A row with bytes may take megabytes. */
export const sliceOf = ({ columns }: Table): number => (columns.some(({ kind }) => kind === "blob") ? 64 : 8_192)

export const keyOf = ({ key }: Table, row: Row): Row => key.map((place) => row[place]!)

/** A row as sent in messages. */
export const nameOf = (table: Table, row: Row): string =>
  `${table.name} ${table.key.map((place) => `${table.columns[place]!.name}=${row[place]}`).join(" ")}`

/** Tables that are an engine's own: they are not copied. */
export const isEnginesOwn = (table: string): boolean => table.startsWith("tollgate_sql_")

/** One of the two databases. A failed promise is an error of its engine. */
export interface End {
  /** As it stands in messages. */
  readonly shown: string
  /** The columns of each table of ours. */
  readonly columns: () => Promise<ReadonlyMap<string, ReadonlySet<string>>>
  readonly count: (table: Table) => Promise<number>
  /** Rows in the order of the key: those behind `after`, or the first ones. */
  readonly read: (table: Table, after: Row | undefined, limit: number) => Promise<ReadonlyArray<Row>>
  readonly last: (table: Table) => Promise<Row | undefined>
}

export interface Source extends End {
  /** The number of texts, by column, with characters that the target does not accept and that were replaced. */
  readonly replaced: Map<string, number>
}

export interface Target extends End {
  /** The content of the copy's own table (`copyTable`); `undefined` if there is none. */
  readonly marks: () => Promise<ReadonlyMap<string, string> | undefined>
  /** Empties the tables and writes these marks, all of it or nothing. */
  readonly begin: (tables: ReadonlyArray<Table>, marks: ReadonlyMap<string, string>) => Promise<void>
  /** Adds rows and writes a mark, in one transaction. `onSent`: called when the engine has the rows, and works on them. */
  readonly write: (
    table: Table,
    rows: ReadonlyArray<Row>,
    mark: readonly [name: string, value: string],
    onSent: () => void
  ) => Promise<void>
  /** Sets what is not copied but follows from the rows. May be done again. */
  readonly settle: () => Promise<void>
  /** Takes the marks away, on the disk when it is done: from now on it may be served. */
  readonly release: () => Promise<void>
}

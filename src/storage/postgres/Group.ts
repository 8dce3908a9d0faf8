/**
 * Sends statements in one group and returns their results together. Statements are prepared once per connection, and their row descriptions are
 * cached. One sync ends the group. If a statement fails, the later ones do not run.
 */
import type { Client, Connection } from "pg"
import { parserOf, valuesFor } from "./Client.ts"
import { postgres } from "./Dialect.ts"

// oxlint-disable-next-line typescript/no-explicit-any -- rows are typed where they are read, next to their SELECT
type Rows = ReadonlyArray<any>

interface Field {
  readonly name: string
  readonly parse: (text: string) => unknown
}

/** A prepared statement. Without fields, it returns no rows. */
interface Prepared {
  readonly name: string
  readonly fields: ReadonlyArray<Field>
}

export interface PendingStatement {
  text: string
  readonly values: ReadonlyArray<unknown>
  /** The prepared statement's name; empty if it is not reused. */
  readonly name: string
  readonly isNew: boolean
  fields: ReadonlyArray<Field>
  readonly rows: Array<Record<string, unknown>>
}

/** The maximum number of prepared statements. The server stores them while the connection is open. */
const preparedMax = 500

/** Builds and sends a connection's groups, one at a time. */
export class Groups {
  readonly #client: Client
  readonly #prepared = new Map<string, Prepared>()
  #names = 0
  #next: Array<PendingStatement> = []

  constructor(client: Client) {
    this.#client = client
  }

  /** Adds a statement in the syntax common to both engines (`Dialect`) to the next group. */
  add(statement: string, params: ReadonlyArray<unknown>): void {
    const text = postgres(statement)
    const known = this.#prepared.get(text)
    this.#next.push({
      text,
      values: valuesFor(text, params),
      name: known?.name ?? (this.#prepared.size < preparedMax ? `group-${this.#names++}` : ""),
      isNew: known === undefined,
      fields: known?.fields ?? [],
      rows: []
    })
  }

  send(): Promise<ReadonlyArray<Rows>> {
    const asked = this.#next
    this.#next = []
    return new Promise((resolve, reject) => {
      const onEnd = (error: unknown) => {
        if (error !== null) return reject(error as Error)
        for (const { fields, isNew, name, text } of asked)
          if (isNew && name !== "") this.#prepared.set(text, { name, fields })
        resolve(asked.map(({ rows }) => rows))
      }
      this.#client.query(new Group(asked, onEnd))
    })
  }

  /** Drops the statements that were not sent. */
  clear(): void {
    this.#next = []
  }
}

/** The members of the driver's connection that its types omit. */
interface Protocol {
  readonly parse: (statement: { readonly name: string; readonly text: string }) => void
  readonly bind: (config: {
    readonly statement: string
    readonly values: ReadonlyArray<unknown>
    readonly valueMapper: (value: unknown) => string | Buffer | null
  }) => void
  readonly describe: (portal: { readonly type: "P"; readonly name: "" }) => void
  readonly execute: (config: undefined) => void
  readonly sync: () => void
  readonly stream: { readonly cork: () => void; readonly uncork: () => void }
}

interface Description {
  readonly fields: ReadonlyArray<{ readonly name: string; readonly dataTypeID: number }>
}

/** A group as a query object for the driver. */
export class Group {
  readonly asked: ReadonlyArray<PendingStatement>
  #place = 0
  /** Called when the group ends. The driver wraps this callback to handle timeouts. */
  callback: (error: unknown) => void

  constructor(asked: ReadonlyArray<PendingStatement>, callback: (error: unknown) => void) {
    this.asked = asked
    this.callback = callback
  }

  submit(connection: Connection): void {
    const protocol = connection as unknown as Protocol
    // Use one system call for all messages.
    protocol.stream.cork()
    for (const { isNew, name, text, values } of this.asked) {
      if (isNew) protocol.parse({ name, text })
      protocol.bind({ statement: name, values, valueMapper: bytesOf })
      if (isNew) protocol.describe({ type: "P", name: "" })
      protocol.execute(undefined)
    }
    protocol.sync()
    protocol.stream.uncork()
  }

  handleRowDescription({ fields }: Description): void {
    this.asked[this.#place]!.fields = fields.map(({ dataTypeID, name }) => ({ name, parse: parserOf(dataTypeID) }))
  }

  handleDataRow({ fields: texts }: { readonly fields: ReadonlyArray<string | null> }): void {
    const { fields, rows } = this.asked[this.#place]!
    const row: Record<string, unknown> = {}
    for (let i = 0; i < fields.length; i++) {
      const { name, parse } = fields[i]!
      const text = texts[i]!
      row[name] = text === null ? null : parse(text)
    }
    rows.push(row)
  }

  handleCommandComplete(): void {
    this.#place++
  }

  handleReadyForQuery(): void {
    this.callback(null)
  }

  handleError(error: unknown): void {
    this.callback(error)
  }
}

const bytesOf = (value: unknown): string | Buffer | null => {
  if (typeof value === "string") return value
  if (value === null || value === undefined) return null
  return value instanceof Uint8Array ? Buffer.from(value.buffer, value.byteOffset, value.byteLength) : String(value)
}

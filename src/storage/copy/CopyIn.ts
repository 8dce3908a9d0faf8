/** Runs `COPY table FROM STDIN` over a driver connection. The driver implements the protocol messages, but has no query that sends them. */
import type { Client, Connection, Submittable } from "pg"
import type { Row, Table } from "./Tables.ts"

/** The methods that the driver calls on the running query. */
interface CopyQuery extends Submittable {
  readonly handleCopyInResponse: (connection: Connection & CopySender) => void
  readonly handleCommandComplete: () => void
  readonly handleReadyForQuery: () => void
  readonly handleError: (error: Error) => void
}

interface CopySender {
  readonly stream: { readonly write: (chunk: string, callback: () => void) => void }
  readonly sendCopyFromChunk: (chunk: Buffer) => void
  readonly endCopyFrom: () => void
}

/** Adds rows to a table. `onSent` is called when all rows have been sent. */
export const copyIn = (
  client: Client,
  { columns, name }: Table,
  rows: ReadonlyArray<Row>,
  onSent: () => void
): Promise<void> =>
  new Promise((resolve, reject) => {
    const text = `COPY ${name} (${columns.map(({ name }) => name).join(", ")}) FROM STDIN`
    const query: CopyQuery = {
      submit: (connection: Connection) => connection.query(text),
      handleCopyInResponse: (connection) => {
        const isBlob = columns.map(({ kind }) => kind === "blob")
        connection.sendCopyFromChunk(Buffer.from(rows.map((row) => lineOf(row, isBlob)).join("")))
        connection.endCopyFrom()
        connection.stream.write("", onSent)
      },
      handleCommandComplete: () => {},
      handleReadyForQuery: resolve,
      handleError: reject
    }
    client.query(query)
  })

const lineOf = (row: Row, isBlob: ReadonlyArray<boolean>): string => {
  let line = ""
  for (let i = 0; i < row.length; i++) {
    const value = row[i]!
    if (i > 0) line += "\t"
    line += value === null ? "\\N" : isBlob[i] ? `\\\\x${value}` : escaped(value)
  }
  return `${line}\n`
}

const escapes: Readonly<Record<string, string>> = { "\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r" }

const escaped = (text: string): string =>
  /[\\\t\n\r]/.test(text) ? text.replaceAll(/[\\\t\n\r]/g, (one) => escapes[one]!) : text

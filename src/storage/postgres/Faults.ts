/** The meaning of errors from PostgreSQL and from the connection to it. */

/**
 * The connection fails (08), it has no room (53) or shuts down (57P), its disk fails (58), it is a standby or read only (25006), a lock
 * or a statement took too long (55P03, 57014), or this process did (25P03): whatever was asked would have failed.
 */
const fault = /^(08...|53...|57P..|58...|25006|25P03|55P03|57014)$/

const socket = /^(ECONN|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_|EHOST|ENET|08|25P03|57P)/

/** Errors of the driver that have no code. */
const driver =
  /^(Connection terminated|timeout expired|timeout exceeded when|Query read timeout|Client has encountered|Client was closed)/

const codeOf = (error: unknown): string => {
  const code = typeof error === "object" && error !== null ? (error as { readonly code?: unknown }).code : undefined
  return typeof code === "string" ? code : ""
}

/** Whether it lost against another transaction. Nothing of it was written. */
export const isLostRace = (error: unknown): boolean => codeOf(error) === "40001" || codeOf(error) === "40P01"

/** Whether another transaction has put a row in first. Nothing of this one was written. */
export const isDuplicate = (error: unknown): boolean => codeOf(error) === "23505"

/** Whether the connection to the server is lost: what was sent before may have been done. */
export const isConnectionFault = (error: unknown): boolean =>
  error instanceof Error && (socket.test(codeOf(error)) || driver.test(error.message))

/** Whether the database cannot be used at the moment, whatever is asked. */
export const isFault = (error: unknown): boolean => fault.test(codeOf(error)) || isConnectionFault(error)

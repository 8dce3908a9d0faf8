/** Classifies the errors of PostgreSQL and its connections. */

/**
 * The codes of errors that would affect any statement. The connection failed (08). The server is out of resources (53), shutting down (57P), a
 * standby or read-only (25006), or its disk failed (58). A lock or statement timed out (55P03, 57014). This process was idle for too long (25P03).
 */
const fault = /^(08...|53...|57P..|58...|25006|25P03|55P03|57014)$/

const socket = /^(ECONN|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_|EHOST|ENET|08|25P03|57P)/

/** The driver's errors without a code. */
const driver =
  /^(Connection terminated|timeout expired|timeout exceeded when|Query read timeout|Client has encountered|Client was closed)/

const codeOf = (error: unknown): string => {
  const code = typeof error === "object" && error !== null ? (error as { readonly code?: unknown }).code : undefined
  return typeof code === "string" ? code : ""
}

/** Returns whether the transaction was aborted because of another one (deadlock, serialization failure) and wrote nothing. */
export const isLostRace = (error: unknown): boolean => codeOf(error) === "40001" || codeOf(error) === "40P01"

/** Returns whether another transaction inserted the row first. In that case, this transaction wrote nothing. */
export const isDuplicate = (error: unknown): boolean => codeOf(error) === "23505"

/** Returns whether the connection to the server failed. The server might have executed earlier statements. */
export const isConnectionFault = (error: unknown): boolean =>
  error instanceof Error && (socket.test(codeOf(error)) || driver.test(error.message))

/** Returns whether the error means that the database is unavailable. */
export const isFault = (error: unknown): boolean => fault.test(codeOf(error)) || isConnectionFault(error)

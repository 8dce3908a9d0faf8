/** Recognizes failures of the database itself, as opposed to those of a single transaction. */
import { isConnectionFault, isFault } from "../../../storage/postgres/Faults.ts"

/**
 * SQLite's codes for a lock held by another connection, a full or failing disk, a missing or read-only file, and a lack of memory. Corruption
 * (`SQLITE_CORRUPT`) is excluded, because it might affect only some transactions.
 */
const fault = /^SQLITE_(BUSY|LOCKED|FULL|IOERR|READONLY|CANTOPEN|NOMEM|PERM|PROTOCOL|NOLFS)(_|$)/

const kinds = { any: fault, lock: /^SQLITE_(BUSY|LOCKED)(_|$)/, commit: /^SQLITE_IOERR(_|$)/ }

/**
 * Returns whether an error or its cause means that the database is not writable. With `lock`, returns whether another process has locked it. With
 * `commit`, returns whether a failed COMMIT might have succeeded, because the disk or the connection failed during the COMMIT.
 */
export const isStorageFault = (error: unknown, which: keyof typeof kinds = "any"): boolean => {
  const codes = kinds[which]
  for (let at = error; typeof at === "object" && at !== null; at = (at as { readonly cause?: unknown }).cause) {
    const { code } = at as { readonly code?: unknown }
    if (typeof code === "string" && codes.test(code)) return true
    if (which === "any" && isFault(at)) return true
    if (which === "commit" && isConnectionFault(at)) return true
  }
  return false
}

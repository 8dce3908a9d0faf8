/** Failures of the database that are no transaction's own: whatever was asked would have failed. */
import { isConnectionFault, isFault } from "../../../storage/postgres/Faults.ts"

/**
 * By SQLite's names: locked by another process, disk full, disk failure, file not writable or missing, out of memory. Damage
 * (`SQLITE_CORRUPT`) is not among them: it may lie where one transaction looks and others do not.
 */
const fault = /^SQLITE_(BUSY|LOCKED|FULL|IOERR|READONLY|CANTOPEN|NOMEM|PERM|PROTOCOL|NOLFS)(_|$)/

const kinds = { any: fault, lock: /^SQLITE_(BUSY|LOCKED)(_|$)/, commit: /^SQLITE_IOERR(_|$)/ }

/**
 * Whether an error, or what caused it, says that the database cannot be written at the moment; `lock`: since another holds it; `commit`: of
 * the error of a COMMIT, whether the transaction may be committed all the same, since the disk or the connection to the server failed in it.
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

/** Returns the name of the operating-system user who runs the command. */
import { userInfo } from "node:os"
import { nameMax } from "../../operations/operator/Operator.ts"
import * as CommandLine from "./CommandLine.ts"

/** Falls back to the uid, because users in some containers have no name. */
export const userName = (): string => {
  try {
    const name = CommandLine.printable(userInfo().username).trim().slice(0, nameMax)
    if (name !== "") return name
  } catch {
    // The operating system has no entry for this uid.
  }
  return `uid ${process.getuid?.() ?? "unknown"}`
}

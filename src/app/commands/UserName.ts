/** The name of the operating-system user who runs a command. */
import { userInfo } from "node:os"
import { nameMax } from "../../operations/operator/Operator.ts"
import * as CommandLine from "./CommandLine.ts"

/** Some containers have users without a name. Their uid identifies them. */
export const userName = (): string => {
  try {
    const name = CommandLine.printable(userInfo().username).trim().slice(0, nameMax)
    if (name !== "") return name
  } catch {
    // The operating system has no entry for this user.
  }
  return `uid ${process.getuid?.() ?? "unknown"}`
}

/** The name of the user of the machine who runs a command. */
import { userInfo } from "node:os"
import { nameMax } from "../../operations/operator/Operator.ts"
import * as CommandLine from "./CommandLine.ts"

/** A user without an entry in the machine's list has a number alone, as in a container. */
export const userName = (): string => {
  try {
    const name = CommandLine.printable(userInfo().username).trim().slice(0, nameMax)
    if (name !== "") return name
  } catch {
    // There is no such entry.
  }
  return `uid ${process.getuid?.() ?? "unknown"}`
}

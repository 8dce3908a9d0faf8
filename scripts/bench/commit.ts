// Builds another commit in a second checkout, for `--against COMMIT`. The build uses this checkout's `node_modules`.
import { execFileSync } from "node:child_process"
import { symlinkSync } from "node:fs"
import { join } from "node:path"
import { say } from "./frame.ts"
import { root } from "./processes.ts"

const git = (...args: ReadonlyArray<string>): string =>
  execFileSync("git", args, { cwd: root, encoding: "utf8" }).trim()

/** Builds the commit in a checkout below `directory`. Returns the path of its `main.js` and a function that removes the checkout. */
export const buildCommit = (
  commit: string,
  directory: string
): { readonly main: string; readonly remove: () => void } => {
  const id = git("rev-parse", "--verify", `${commit}^{commit}`)
  const checkout = join(directory, "against")
  git("worktree", "add", "--detach", "--quiet", checkout, id)
  const remove = (): void => void git("worktree", "remove", "--force", checkout)
  try {
    symlinkSync(join(root, "node_modules"), join(checkout, "node_modules"))
    say(`building ${id.slice(0, 10)}`)
    execFileSync("npm", ["run", "--silent", "build"], { cwd: checkout, stdio: ["ignore", 2, 2] })
    return { main: join(checkout, "dist", "main.js"), remove }
  } catch (error) {
    remove()
    throw error
  }
}

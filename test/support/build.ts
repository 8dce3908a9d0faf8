/** Before the tests, builds `dist/` from the current source. Tests that start the real process use it, and so does the writer's thread. */
import { execFileSync } from "node:child_process"
import { join } from "node:path"

export const setup = (): void => {
  execFileSync(process.execPath, ["--import", "tsx", "scripts/build.ts"], {
    cwd: join(import.meta.dirname, "..", ".."),
    stdio: "inherit"
  })
}

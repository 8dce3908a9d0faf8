/** Builds `dist/` from the current source before the tests. Tests that start the real process need it, and the writer's thread does too. */
import { execFileSync } from "node:child_process"
import { join } from "node:path"

export const setup = (): void => {
  execFileSync(process.execPath, ["--import", "tsx", "scripts/build.ts"], {
    cwd: join(import.meta.dirname, "..", ".."),
    stdio: "inherit"
  })
}

/** Before the tests: `dist/` as the source is now. The tests that start the real process start that, as does the writer's thread. */
import { execFileSync } from "node:child_process"
import { join } from "node:path"

export const setup = (): void => {
  execFileSync(process.execPath, ["--import", "tsx", "scripts/build.ts"], {
    cwd: join(import.meta.dirname, "..", ".."),
    stdio: "inherit"
  })
}

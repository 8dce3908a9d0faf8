import { defineConfig } from "vitest/config"
import { BaseSequencer } from "vitest/node"
import type { TestSpecification } from "vitest/node"

/** Files of `test/e2e` take longest: begun last, one of them would keep one worker busy while the others have nothing to do. */
class EndToEndFirst extends BaseSequencer {
  override async sort(files: Array<TestSpecification>): Promise<Array<TestSpecification>> {
    const sorted = await super.sort(files)
    const isFirst = ({ moduleId }: TestSpecification): boolean => moduleId.includes("/test/e2e/")
    return [...sorted.filter(isFirst), ...sorted.filter((file) => !isFirst(file))]
  }
}

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    globalSetup: ["test/support/build.ts", "test/support/postgres.ts"],
    setupFiles: ["test/support/testers.ts"],
    // Only what hangs should fail by it: a machine that others use too may take several times as long as a quiet one.
    testTimeout: 180_000,
    hookTimeout: 180_000,
    // Test files that run in one worker share their modules: loading them anew costs more than a second a file.
    isolate: false,
    sequence: { sequencer: EndToEndFirst },
    // For two cores: while some tests wait, for a process or for a limit in seconds, others compute.
    maxWorkers: 3,
    // All of them to the end: a worker above the least is ended when it is idle, even if it has just been given a file.
    minWorkers: 3
  }
})

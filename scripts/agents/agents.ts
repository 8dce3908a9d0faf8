// The agents' packages, and each agent's usual setup for a URL and a key.
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"

/** The inputs of one prompt's run. */
export interface Setting {
  /** The installation folder. It contains `node_modules`. */
  readonly installed: string
  /** The agent's home folder, initially empty. */
  readonly home: string
  /** The agent's working folder. */
  readonly folder: string
  /** The service's URL, without a path. */
  readonly url: string
  readonly key: string
  readonly model: string
  readonly prompt: string
}

export interface Agent {
  readonly name: string
  readonly package: string
  readonly version: string
  /** The endpoint in its calls' usage records. */
  readonly endpoint: string
  /** Returns the program, its arguments and its additional environment variables. */
  readonly command: (setting: Setting) => {
    readonly args: readonly [string, ...ReadonlyArray<string>]
    readonly env: Readonly<Record<string, string>>
  }
}

const bin = ({ installed }: Setting, name: string): string => join(installed, "node_modules", ".bin", name)

const codex: Agent = {
  name: "Codex",
  package: "@openai/codex",
  version: "0.169.0",
  endpoint: "responses",
  command: (setting) => {
    const folder = join(setting.home, ".codex")
    mkdirSync(folder, { recursive: true })
    writeFileSync(
      join(folder, "config.toml"),
      `model = "${setting.model}"
model_provider = "tollgate"
check_for_update_on_startup = false
web_search = "disabled"

[model_providers.tollgate]
name = "Tollgate"
base_url = "${setting.url}/v1"
env_key = "TOLLGATE_KEY"
wire_api = "responses"
`
    )
    return {
      args: [
        bin(setting, "codex"),
        "exec",
        "--skip-git-repo-check",
        "--dangerously-bypass-approvals-and-sandbox",
        setting.prompt
      ],
      env: { TOLLGATE_KEY: setting.key }
    }
  }
}

const claude: Agent = {
  name: "Claude Code",
  package: "@anthropic-ai/claude-code",
  version: "2.1.330",
  endpoint: "messages",
  command: (setting) => ({
    // The skipped install script would have replaced `bin` with the program.
    args: [
      process.execPath,
      join(setting.installed, "node_modules", "@anthropic-ai", "claude-code", "cli-wrapper.cjs"),
      "--print",
      "--allowed-tools",
      "Bash",
      "--",
      setting.prompt
    ],
    env: {
      ANTHROPIC_BASE_URL: setting.url,
      ANTHROPIC_AUTH_TOKEN: setting.key,
      ANTHROPIC_MODEL: setting.model,
      ANTHROPIC_SMALL_FAST_MODEL: setting.model,
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1"
    }
  })
}

const qwen: Agent = {
  name: "Qwen Code",
  package: "@qwen-code/qwen-code",
  version: "0.24.4",
  endpoint: "chat/completions",
  command: (setting) => ({
    args: [bin(setting, "qwen"), "--yolo", "--prompt", setting.prompt],
    env: { OPENAI_BASE_URL: `${setting.url}/v1`, OPENAI_API_KEY: setting.key, OPENAI_MODEL: setting.model }
  })
}

export const agents: ReadonlyArray<Agent> = [codex, claude, qwen]

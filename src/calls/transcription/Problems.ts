import { Problem } from "../../kernel/Problem.ts"

export class AudioTooLarge extends Problem<AudioTooLarge>()("AudioTooLarge", {
  status: 413,
  error: "the audio file exceeds 25 MiB",
  code: "payload_too_large"
}) {}

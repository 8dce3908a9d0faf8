/** The synchronous tools: speech, transcription and search. */
import { useQuery } from "@tanstack/react-query"
import { apiRoot } from "../../app/Base.ts"
import { api, responseBody } from "../../app/Client.ts"
import type { Schemas } from "../../app/Client.ts"
import { sendCall, Runs } from "./runs.ts"

export const voices = ["alloy", "ash", "ballad", "coral", "echo", "fable", "onyx", "nova", "sage", "shimmer", "verse"]
export const formats = ["mp3", "wav", "opus", "aac", "flac"]

/** The request body, without empty fields. */
export interface SpeechBody {
  readonly input: string
  readonly voice: string
  readonly response_format: string
  readonly model?: string
  readonly instructions?: string
}

export interface Audio {
  /** An object URL, valid until revoked. */
  readonly url: string
  readonly bytes: number
}

const post = (path: string, body: BodyInit, signal: AbortSignal, headers: Record<string, string> = {}): Request =>
  new Request(apiRoot + path, { method: "POST", credentials: "omit", headers, body, signal })

export const speechRuns = new Runs<SpeechBody, Audio>({
  call: (body, signal) =>
    sendCall(
      post("/v1/tools/speech", JSON.stringify(body), signal, { "content-type": "application/json" }),
      async (response) => {
        const audio = await response.blob()
        return { url: URL.createObjectURL(audio), bytes: audio.size }
      }
    ),
  forget: ({ url }) => URL.revokeObjectURL(url)
})

export interface TranscriptionInput {
  readonly file: File
  readonly fields: Readonly<Record<string, string>>
}

const formOf = ({ fields, file }: TranscriptionInput): FormData => {
  const form = new FormData()
  // Fields precede the file, because the service needs them first.
  for (const [name, value] of Object.entries(fields)) form.append(name, value)
  form.append("file", file)
  return form
}

export const transcriptionRuns = new Runs<TranscriptionInput, Schemas["TranscriptionAnswer"]>({
  call: (input, signal) => sendCall(post("/v1/transcriptions", formOf(input), signal), (response) => response.json())
})

export type SearchFields = Readonly<Record<string, string>>

export const searchRuns = new Runs<SearchFields, Schemas["SearchAnswer"]>({
  call: (fields, signal) =>
    sendCall(
      new Request(`${apiRoot}/v1/search?${new URLSearchParams(fields).toString()}`, { credentials: "omit", signal }),
      (response) => response.json()
    )
})

export const useSearchProviders = () =>
  useQuery({
    queryKey: ["search-providers"],
    staleTime: 300_000,
    queryFn: async () => (await responseBody(api.GET("/v1/tools/search/providers"))).providers
  })

export const filledIn = (fields: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(fields).flatMap(([name, value]) => (value.trim() === "" ? [] : [[name, value.trim()]]))
  )

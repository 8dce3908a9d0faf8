/** Converts text to speech for playback or download. */
import { AudioLines, Download } from "lucide-react"
import { useState } from "react"
import { count, fileSize } from "../../moments.ts"
import { SelectField, TextField } from "../../parts/Fields.tsx"
import { playgroundTexts } from "../../texts/playground.ts"
import { Fact } from "./Fact.tsx"
import { Program } from "./Program.tsx"
import { speechCode } from "./programs.ts"
import { filledIn, formats, speechRuns, voices } from "./tools.ts"
import type { Audio, SpeechBody } from "./tools.ts"
import { toolModel, ToolModelField } from "./ToolModel.tsx"
import { ToolOf } from "./ToolOf.tsx"

const words = playgroundTexts.speech

interface Draft {
  readonly input: string
  readonly model: string
  readonly voice: string
  readonly format: string
  readonly instructions: string
}

const empty: Draft = { input: "", model: "", voice: "alloy", format: "mp3", instructions: "" }

const bodyOf = ({ format, input, instructions, model, voice }: Draft): SpeechBody => ({
  input,
  voice,
  response_format: format,
  ...toolModel(model),
  ...filledIn({ instructions })
})

/** Returns the number of billable characters. */
const charactersOf = (text: string): number => [...text].length

const Player = ({ audio, format }: { readonly audio: Audio; readonly format: string }) => {
  const [isUnplayable, setUnplayable] = useState(false)
  return (
    <div className="playground-player">
      {isUnplayable ? (
        <p className="quiet">{words.unplayable}</p>
      ) : (
        // The input text is the transcript.
        <audio
          src={audio.url}
          controls
          preload="metadata"
          aria-label={words.title}
          onError={() => setUnplayable(true)}
        />
      )}
      <a className="button button-plain" href={audio.url} download={`speech.${format}`}>
        <Download size={15} strokeWidth={1.75} aria-hidden /> {words.download}
      </a>
    </div>
  )
}

export const Speech = ({ onExplain }: { readonly onExplain: (usageId: string) => void }) => {
  const [draft, setDraft] = useState(empty)
  const field = <K extends keyof Draft>(name: K) => ({
    value: draft[name],
    onChange: (value: string) => setDraft({ ...draft, [name]: value })
  })
  const body = bodyOf(draft)
  return (
    <ToolOf<SpeechBody, Audio>
      runs={speechRuns}
      onExplain={onExplain}
      title={words.title}
      icon={AudioLines}
      emptyTitle={words.emptyTitle}
      emptyText={words.emptyText}
      action={words.action}
      input={draft.input.trim() === "" ? undefined : body}
      asked={({ input }) => <span className="playground-quoted">{input}</span>}
      shown={(audio, { response_format }) => <Player audio={audio} format={response_format} />}
      facts={({ bytes }, { input, voice }) => (
        <>
          <Fact name={words.characters}>{count(charactersOf(input))}</Fact>
          <Fact name={words.voice}>{voice}</Fact>
          <Fact name={words.size}>{fileSize(bytes)}</Fact>
        </>
      )}
      fields={
        <>
          <TextField
            name="input"
            label={words.text}
            help={words.textHelp(count(charactersOf(draft.input)))}
            lines={5}
            {...field("input")}
          />
          <div className="playground-pair">
            <SelectField
              name="voice"
              label={words.voice}
              options={voices.map((voice) => [voice, voice])}
              {...field("voice")}
            />
            <SelectField
              name="response_format"
              label={words.format}
              options={formats.map((format) => [format, format])}
              {...field("format")}
            />
          </div>
          <ToolModelField tool="speech" {...field("model")} />
          <TextField
            name="instructions"
            label={words.instructions}
            help={words.instructionsHelp}
            lines={2}
            {...field("instructions")}
          />
        </>
      }
      program={<Program of={speechCode(draft.input.trim() === "" ? { ...body, input: words.example } : body)} />}
    />
  )
}

/** Radio buttons on one line, for a small number of options. */
import { Label } from "react-aria-components/Label"
import { Radio, RadioGroup } from "react-aria-components/RadioGroup"

interface ChoiceProps<K extends string> {
  readonly label: string
  readonly options: ReadonlyArray<readonly [value: K, label: string]>
  readonly value: K
  readonly onChange: (value: K) => void
}

export const Choice = <K extends string>({ label, onChange, options, value }: ChoiceProps<K>) => (
  <RadioGroup className="choice" orientation="horizontal" value={value} onChange={(chosen) => onChange(chosen as K)}>
    <Label className="sr-only">{label}</Label>
    {options.map(([key, text]) => (
      <Radio key={key} value={key} className="choice-option">
        {text}
      </Radio>
    ))}
  </RadioGroup>
)

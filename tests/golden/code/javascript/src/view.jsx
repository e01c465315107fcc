import { Button } from './button';

export const View = ({ text }) => <Button label={text}><span /></Button>;
